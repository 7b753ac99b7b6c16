-- What the provider allows. An empty table takes the provider's defaults.
-- `moongate policy show @NAME@` prints all of them.
return policy @PROVIDER@ {
}
