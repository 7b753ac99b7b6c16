// The package manager wants a source file of a module in C.
#include "CPostgres.h"
