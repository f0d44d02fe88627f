// Bytes of a session's state, by name: what files are written from and read to, wherever the state lies.
#pragma once

#include <cstdint>
#include <string>

namespace plimsoll::runtime {

struct StateRange {
  std::string state;
  int64_t offset = 0;
  int64_t bytes = 0;
};

}  // namespace plimsoll::runtime
