// What the parts of the fake driver share.
#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "backends/cuda/api.h"

namespace fake {

using plimsoll::cuda::DevicePointer;
using plimsoll::cuda::Handle;

/// Some of cuda.h's CUresult.
enum {
  kOk = 0,
  kInvalid = 1,
  kOutOfMemory = 2,
  kNoDevice = 100,
  kInvalidContext = 201,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kLaunchFailed = 719,
  kCaptureInvalid = 900,
  kUnjoined = 904,
  kIsolation = 905,
  kRefused = 999
};

/// Whether PLIMSOLL_FAKE_CUDA is this word.
bool is(const char* word);
/// Whether this call is the one that PLIMSOLL_FAKE_CUDA_FAULT refuses; counted anew whenever another number
/// is set.
bool refused();
/// Held by every call, and while work runs: it does not begin or end beside another thread's.
std::recursive_mutex& turn();
/// Whether the calling thread has the context.
bool has_context();
/// Whether `bytes` from `at` on are device or pinned memory.
bool is_reached(DevicePointer at, size_t bytes);

/// Queues work on a stream, or makes it a node of the graph that the stream is captured into. It takes
/// `seconds` of the card's clock, which tells nothing but what work of how many bytes and threads was queued.
int queue(Handle stream, double seconds, std::function<void()> work);
/// What each piece of work takes besides.
inline constexpr double kQueueing = 1e-6;
/// Runs all that is queued anywhere.
void finish_all();
/// What a kernel broke; the context is lost from then on. Empty: nothing.
std::string& loss();
/// kOk, or kLaunchFailed once a kernel has failed.
int lost();

}  // namespace fake

/// For cuBLASLt, which queues its products: fake::queue.
extern "C" int plimsollFakeQueue(plimsoll::cuda::Handle stream, double seconds, std::function<void()>* work);
/// The card's, 90 or what PLIMSOLL_FAKE_CAPABILITY says.
extern "C" int plimsollFakeCapability();
