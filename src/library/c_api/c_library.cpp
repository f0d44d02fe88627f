// Version, ops, the order of an epoch, errors.
#include <string>

#include "datasets/permutation.h"
#include "library/c_api/border.h"
#include "library/front_ops.h"

using namespace plimsoll;           // NOLINT: the interface has no namespace
using namespace plimsoll::library;  // NOLINT

const char* pls_version(void) { return PLIMSOLL_VERSION; }

int pls_abi_version(void) { return PLS_ABI_VERSION; }

const char* pls_ops(void) {
  static const std::string kOps = front_ops_json();
  return kOps.c_str();
}

int pls_order(int64_t seed, int64_t epoch, int64_t size, int64_t first, int64_t count, int64_t* positions,
              pls_error** error) {
  return guarded(error, [&]() -> Status {
    if (size < 1 || epoch < 0 || first < 0 || count < 0 || count > size || first > size - count)
      return Error{ErrorCode::kInvalidArgument, "order: positions beyond the epoch"};
    if (count > 0) PLS_NEEDS(positions);
    const datasets::Permutation order(size, static_cast<uint64_t>(seed), static_cast<uint64_t>(epoch));
    for (int64_t i = 0; i < count; ++i) positions[i] = order.at(first + i);
    return Ok{};
  });
}

int pls_error_code(const pls_error* error) { return error == nullptr ? PLS_OK : error->code; }
const char* pls_error_message(const pls_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
const char* pls_error_hint(const pls_error* error) { return error == nullptr ? "" : error->hint.c_str(); }
const char* pls_error_json(const pls_error* error) { return error == nullptr ? "{}" : error->json.c_str(); }
void pls_error_free(pls_error* error) { delete error; }
