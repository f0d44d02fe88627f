// A kernel compiled for the host, and running it over a grid of blocks.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace twin {

struct Kernel {
  const char* name;
  int most_threads;                     ///< of its __launch_bounds__, or 1024
  const size_t* sizes;                  ///< of its parameters, 0 behind the last
  void (*run)(void* const* arguments);  ///< as one thread
  char *shared_begin, *shared_end;      ///< static shared memory of its file
};

/// What a kernel's own declaration says of its parameters.
template <auto kFunction>
struct Call;
template <typename... Parameters, void (*kFunction)(Parameters...)>
struct Call<kFunction> {
  static constexpr size_t sizes[] = {sizeof(Parameters)..., 0};
  static void run(void* const* arguments) { with(arguments, std::index_sequence_for<Parameters...>{}); }

 private:
  template <size_t... I>
  static void with([[maybe_unused]] void* const* arguments, std::index_sequence<I...>) {
    kFunction(*static_cast<const Parameters*>(arguments[I])...);
  }
};

/// All kernels of the sources that this library was made of (make_twin.py). Null where there is none.
const Kernel* find_kernel(const char* name);

struct Extent {
  unsigned x = 1, y = 1, z = 1;
};
/// Runs every block, in an order that changes from launch to launch. `is_early`: it may have come before the
/// grids before it had ended. Empty, or what went wrong. One launch at a time in a process.
std::string run_grid(const Kernel& kernel, Extent grid, Extent block, size_t shared_bytes,
                     void* const* arguments, bool is_early);

/// The next of the numbers that PLIMSOLL_FAKE_CUDA_SEED begins, below `end`: orders that a card does not
/// promise.
unsigned drawn(unsigned end);

}  // namespace twin
