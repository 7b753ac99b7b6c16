// MoongateProxy
