// A thread more, or an error where the system gives none: the one way in which this project starts threads.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "base/result.h"

namespace plimsoll {

/// Moves, does not copy; its end waits for the thread's. Who cannot do without the thread returns the error:
/// threads that were started before end with their owners. Who has it help alone goes on with those that
/// there are.
class Thread {
 public:
  Thread() = default;
  /// Runs `body` on a thread of its own; `purpose` names it in the error, "reading batches". Errors: kIo
  /// where the system allows no further thread or has no memory for its stack.
  static Result<Thread> start(std::string_view purpose, std::function<void()> body);
  Thread(Thread&& other) noexcept = default;
  Thread& operator=(Thread&& other) noexcept;
  ~Thread() { join(); }

  [[nodiscard]] bool joinable() const { return thread_.joinable(); }
  /// Waits for its end, if there is one to wait for.
  void join();

  /// Threads of this process that were started here and not yet joined.
  static int num_running();

 private:
  std::thread thread_;
};

}  // namespace plimsoll
