print("moongate")
