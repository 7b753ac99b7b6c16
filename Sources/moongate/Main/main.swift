import MoongateGateway
import MoongateProgram

await CommandLineCall.run(RootCommand.self)
