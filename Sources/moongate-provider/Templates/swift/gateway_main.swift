import MoongateCommand
import NewProvider

await Moongate.run(providers: Moongate.shipped + [NewProvider()])
