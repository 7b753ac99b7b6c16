import MoongateProgram
import MoongateProviderTools

await CommandLineCall.run(ProviderToolsCommand.self)
