#include "telemetry/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <filesystem>

#include "io/file.h"

namespace plimsoll::telemetry {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1U) != 0 ? (c >> 1U) ^ 0x82f63b78U : c >> 1U;
    table[i] = c;
  }
  return table;
}

uint32_t masked(uint32_t crc) { return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U; }

template <typename T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
}

// Protocol buffers: a field is its number and wire type, then its value.
constexpr uint64_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<char>(value | 0x80U));
  out.push_back(static_cast<char>(value));
}
void put_key(std::string& out, uint64_t field, uint64_t type) { put_varint(out, field << 3U | type); }
void put_bytes(std::string& out, uint64_t field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}
std::string event_of(double wall_time) {
  std::string out;
  put_key(out, 1, kFixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(wall_time));
  return out;
}
std::string event_of(double wall_time, int64_t step) {
  std::string out = event_of(wall_time);
  put_key(out, 2, kVarint);
  put_varint(out, static_cast<uint64_t>(step));
  return out;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "localhost";
  return name.data();
}

/// Seconds of the newest file there, and how many have them: a clock may stand still or go back.
std::pair<int64_t, int64_t> newest(const std::string& folder) {
  int64_t seconds = 0, count = 0;
  std::error_code code;
  for (std::filesystem::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    const int64_t of = std::strtoll(name.c_str() + kPrefix.size(), nullptr, 10);
    if (of > seconds) {
      seconds = of;
      count = 0;
    }
    if (of == seconds) ++count;
  }
  return {seconds, count};
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = crc_table();
  uint32_t crc = 0xffffffffU;
  for (const char c : bytes) crc = table[(crc ^ static_cast<uint8_t>(c)) & 0xffU] ^ (crc >> 8U);
  return ~crc;
}

std::string event_record(std::string_view event) {
  std::string out;
  put_little_endian(out, static_cast<uint64_t>(event.size()));
  put_little_endian(out, masked(crc32c(out)));
  out += event;
  put_little_endian(out, masked(crc32c(event)));
  return out;
}

std::string version_event(double wall_time) {
  std::string out = event_of(wall_time);
  put_bytes(out, 3, "brain.Event:2");
  return out;
}

std::string start_event(double wall_time, int64_t step) {
  std::string out = event_of(wall_time, step), log;
  put_key(log, 1, kVarint);  // SessionLog.status
  put_varint(log, 1);        // START
  put_bytes(out, 7, log);
  return out;
}

std::string scalars_event(double wall_time, int64_t step, const Scalars& scalars) {
  std::string out = event_of(wall_time, step), summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    put_bytes(value, 1, tag);
    put_key(value, 2, kFixed32);
    put_little_endian(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
    put_bytes(summary, 1, value);
  }
  put_bytes(out, 5, summary);
  return out;
}

Result<EventFile> EventFile::create(const std::string& folder, int64_t first_step) {
  PLIMSOLL_TRY(io::create_writable_directory(folder));
  const auto [last, count] = newest(folder);
  const double now = wall_seconds();
  const int64_t seconds = std::max(last, static_cast<int64_t>(now));
  // The number stands before the host, so that names sort by start wherever the run goes on.
  const std::string name =
      fmt::format("{}{}.{:06}.{}", kPrefix, seconds, seconds == last ? count : 0, host_name());
  PLIMSOLL_ASSIGN(io::AppendFile file, io::AppendFile::open(folder + "/" + name));
  EventFile out(std::move(file));
  PLIMSOLL_TRY(out.file_.add(event_record(version_event(now)) + event_record(start_event(now, first_step))));
  return out;
}

Status EventFile::add(int64_t step, const Scalars& scalars) {
  return file_.add(event_record(scalars_event(wall_seconds(), step, scalars)));
}

}  // namespace plimsoll::telemetry
