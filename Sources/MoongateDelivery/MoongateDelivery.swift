// MoongateDelivery
