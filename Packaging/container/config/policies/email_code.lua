-- What the provider allows. An empty table takes the provider's defaults.
-- `moongate policy show email_code` prints all of them.
return policy "email_code" {
}
