import MoongateCommand

await Moongate.run()
