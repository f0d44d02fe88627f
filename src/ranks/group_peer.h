// Another rank as a group knows it.
#pragma once

#include <deque>
#include <mutex>
#include <string>

#include "ranks/group.h"

namespace plimsoll::ranks {

/// Seconds that a process has to end by itself once a rank is lost: it ends within two of the loss.
inline constexpr double kLeaveSeconds = 1.0;

/// Fields behind `connection` are the watch's, or guarded by the group's mutex.
struct Group::Peer {
  int rank = 0;
  int64_t pid = 0;
  std::string host;
  Connection connection;
  std::mutex sending;
  bool has_left = false;
  std::deque<std::string> texts;
  double heard_at = 0, moved_at = 0;  ///< its last message; the last one with other progress
  int64_t step = 0, progress = -1;
  Phase phase = Phase::kPreparing;
};

}  // namespace plimsoll::ranks
