// MoongateCore
