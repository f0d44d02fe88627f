// The CPU backend's own team of threads. No OpenMP: a second team beside a spinning one halves both.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace plimsoll::cpu {

/// A non-owning reference to a callable `void(int64_t tile, int thread)`; it must outlive the call.
class TileBody {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TileBody>) TileBody(F&& f)  // NOLINT: implicit by design
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, int64_t tile, int thread) {
          (*static_cast<std::remove_reference_t<F>*>(object))(tile, thread);
        }) {}
  void operator()(int64_t tile, int thread) const { call_(object_, tile, thread); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int);
};

/// Threads that live as long as the pool. The caller is thread 0 and works too.
/// Workers spin briefly for the next call, then sleep on a futex.
class ThreadPool {
 public:
  /// `num_threads` >= 1, the caller included.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int num_threads() const;

  /// Calls body(tile, thread) once for each tile in [0, num_tiles) and returns when all are done.
  /// Tiles are claimed dynamically, in rising order; `thread` is in [0, num_threads()), for private scratch.
  /// Determinism: callers let no result depend on the grid or on `thread`. Throws what a tile has thrown
  /// first, when all are done.
  /// Not reentrant: a body never calls run. Allocates nothing.
  void run(int64_t num_tiles, TileBody body);

  /// Begins, from zero, or ends to count the seconds that each thread spends in tiles. Between calls of run.
  void count_seconds(bool on);
  /// Those since it was last asked, by thread; empty while nothing is counted. Valid until the next call.
  std::span<const double> take_seconds();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::cpu
