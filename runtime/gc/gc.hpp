// The managed heap and its transactions, in one include.
#pragma once

#include "runtime/gc/heap.hpp"
#include "runtime/gc/mutator.hpp"
#include "runtime/gc/object.hpp"
#include "runtime/gc/roots.hpp"
#include "runtime/gc/tx/driver.hpp"
#include "runtime/gc/tx/transaction.hpp"
#include "runtime/gc/tx/transactions.hpp"
