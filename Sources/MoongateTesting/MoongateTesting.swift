// MoongateTesting
