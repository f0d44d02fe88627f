// Checks that pieces of every rank arrive where they belong, whichever way they take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/communicator.h"

namespace plimsoll::ranks::fixtures {

using Words = std::vector<uint32_t>;

inline std::span<const std::byte> bytes(const Words& words) { return std::as_bytes(std::span(words)); }
inline std::span<std::byte> bytes(Words& words) { return std::as_writable_bytes(std::span(words)); }

void check_exchange(runtime::Communicator& ranks, size_t count, size_t piece);
/// All of it is rank 0's: the others receive nothing and have no place for it.
void check_exchange_with_first(runtime::Communicator& ranks, size_t count);
void check_gather(runtime::Communicator& ranks, size_t piece, size_t whole);
/// As the transport does it, and as any does that knows no better.
void check_broadcast(runtime::Communicator& ranks, size_t count);
/// Of sizes that divide and that do not; the largest goes in several parts.
void check_exchanges(runtime::Communicator& ranks);

}  // namespace plimsoll::ranks::fixtures
