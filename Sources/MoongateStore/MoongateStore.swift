// MoongateStore
