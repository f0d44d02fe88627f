// A stream that does at once what it is asked for, of memory of the host. It computes nothing.
#pragma once

#include <cstring>

#include "backends/cuda/stream.h"

namespace plimsoll::cuda::fixtures {

class ImmediateStream final : public Stream {
 public:
  [[nodiscard]] int capability() const override { return 90; }
  Status multiply(const Product& /*product*/) override { return Ok{}; }
  bool multiplies(const Product& /*product*/) override { return false; }
  Status fill(void* data, int64_t bytes, uint32_t pattern) override {
    for (int64_t at = 0; at < bytes; at += 4) std::memcpy(static_cast<char*>(data) + at, &pattern, 4);
    return Ok{};
  }
  Status copy(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return Ok{};
  }
  Status run_on_host(std::function<void()> work) override {
    work();
    return Ok{};
  }
  [[nodiscard]] Collectives* collectives() const override { return nullptr; }
  [[nodiscard]] void* handle() const override { return nullptr; }

 protected:
  Status launch_raw(const Function& /*function*/, Dim /*grid*/, Dim /*block*/, uint32_t /*shared_bytes*/,
                    const void* /*arguments*/) override {
    return Ok{};
  }
};

}  // namespace plimsoll::cuda::fixtures
