// The folder in which runs keep tokenized texts and pack indexes: which of it live processes use, and what is
// removed where it grows beyond a limit.
//
//   tokens-<checksum>.shard, <checksum>.pack   the entries; a file's time is when a run last asked for it
//   examples-<checksum>.shard and .labels, perhaps .types   files of one entry, which are used and removed
//                                              together
//   images-<checksum>.images, .labels, .pixels  a list of images, its labels, images in one file
//   features-<checksum>.f32                    what a frozen backbone gives of a list's images
//   .lock                                      shared by who makes data ready, exclusive for who removes
//   .in-use-<process>-<number>                 names that a live process uses; locked while it lives
//
// Locks are flock's: they end with their process, however it ends, so what a crash leaves is of the past and
// is removed like anything else. Files of other names are nobody's business and stay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "io/descriptor.h"

namespace plimsoll::preprocessing {

/// A file of the cache.
struct CacheEntry {
  std::string name = {};
  int64_t bytes = 0;
  int64_t used_at = 0;  ///< nanoseconds since 1970
  bool in_use = false;  ///< by a process that lives
};

/// The most recently used first. A folder that is not there is empty. Errors: kIo.
Result<std::vector<CacheEntry>> list_data_cache(const std::string& folder);

/// What was removed of a cache, and what is left.
struct CacheTrim {
  int64_t removed_files = 0, removed_bytes = 0;
  int64_t left_files = 0, left_bytes = 0;
  bool is_busy = false;  ///< somebody makes data ready in it right now: nothing was removed
};
/// Removes the least recently used entries until those that are left take `limit_bytes` or less, and what
/// writers that were killed left behind; never what a live process uses. Does not wait. Errors: kIo.
Result<CacheTrim> trim_data_cache(const std::string& folder, int64_t limit_bytes);

/// While it lives, nothing is removed from the folder; what is told to `use` stays until the process ends
/// that took the lease. Moves, does not copy.
class CacheLease {
 public:
  /// Waits where somebody is removing, for moments. Errors: kIo, also where there is no such folder.
  static Result<CacheLease> take(const std::string& folder);
  /// The file counts as used from now on; one outside of the folder is passed over. Also from a process that
  /// this one forked. Errors: kIo.
  Status use(const std::string& path) const;
  /// Ends the lease. Where nothing but what it made itself lies in the folder, that is removed.
  void give_up() &&;

 private:
  CacheLease(std::string folder, io::Descriptor lock, int names)
      : folder_(std::move(folder)), lock_(std::move(lock)), names_(names) {}
  std::string folder_;
  io::Descriptor lock_;
  int names_ = -1;  // of the process, which keeps it
};

}  // namespace plimsoll::preprocessing
