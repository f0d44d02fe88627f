// Services of the program around these modules. They concern the whole process, so a module asks for them
// here and does not do them by itself: within a library nothing is printed, forked or trimmed.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace plimsoll {

using Work = std::function<Result<std::string>()>;

struct Host {
  /// Shows a remark to people. From any thread. Null: nobody sees it.
  void (*note)(const std::string& text) = nullptr;
  /// Returns free memory of the heap to the operating system. Null: it stays in the process.
  void (*trim_heap)() = nullptr;
  /// Runs work in a process of its own and returns what it returned. Null: it runs within this process.
  Result<std::string> (*run_apart)(const Work& work) = nullptr;
  /// Gets the text of a bug (check.h) before the process ends, and may throw instead of returning: a library
  /// does not end its user's program. Null: the text goes to stderr.
  void (*found_bug)(const std::string& text) = nullptr;
};

/// Sets what the functions below do. Call it before other threads run.
void set_host(const Host& host);

/// The program's own, as set_host has it.
const Host& host();
/// A remark for people; results do not go through here. From any thread.
void note(const std::string& text);
/// Called where much has been freed and a session is about to take its memory.
void trim_heap();
/// Runs `work`, which needs memory that this process should never have held: its peak is planned. Errors: the
/// work's own, also those that it throws; kIo where there can be no other process.
Result<std::string> run_apart(const Work& work);

}  // namespace plimsoll
