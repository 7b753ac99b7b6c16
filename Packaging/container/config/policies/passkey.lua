-- What the provider allows. An empty table takes the provider's defaults.
-- `moongate policy show passkey` prints all of them.
return policy "passkey" {
}
