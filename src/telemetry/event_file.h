// TensorBoard's event files: a record a step of named scalars. A record is a protocol buffer (Event) between
// its length and checksums; only the handful of fields that scalars need is written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/append_file.h"

namespace plimsoll::telemetry {

using Scalars = std::vector<std::pair<std::string, double>>;

/// CRC-32C (Castagnoli), as iSCSI has it: of "123456789" it is e3069283.
uint32_t crc32c(std::string_view bytes);
/// One record of a file: u64 length, masked crc, data, masked crc.
std::string event_record(std::string_view event);
/// Event protocol buffers, without the record around them.
std::string version_event(double wall_time);
/// What has been logged from this step on by an earlier process is void.
std::string start_event(double wall_time, int64_t step);
std::string scalars_event(double wall_time, int64_t step, const Scalars& scalars);

class EventFile {
 public:
  /// A new file in `folder`, which is made; its name sorts behind those that are there. It begins by saying
  /// that the process starts at `first_step`. Errors: kIo.
  static Result<EventFile> create(const std::string& folder, int64_t first_step);
  /// Errors: as AppendFile::add.
  Status add(int64_t step, const Scalars& scalars);

 private:
  explicit EventFile(io::AppendFile file) : file_(std::move(file)) {}
  io::AppendFile file_;
};

}  // namespace plimsoll::telemetry
