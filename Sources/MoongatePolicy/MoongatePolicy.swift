// MoongatePolicy
