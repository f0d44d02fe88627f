#include "telemetry/run_log.h"

#include <charconv>
#include <utility>

#include "io/append_file.h"
#include "io/file.h"
#include "io/line_reader.h"

namespace plimsoll::telemetry {

int64_t step_of_event(std::string_view line) {
  constexpr std::string_view kBegin = "{\"event\": \"", kStep = "\"step\": ";
  if (!line.starts_with(kBegin)) return -1;
  const std::string_view rest = line.substr(kBegin.size());
  bool has_step = false;
  for (const char* name : {"step\"", "eval\"", "checkpoint\"", "warning\"", "machine\"", "memory\""})
    has_step |= rest.starts_with(name);
  const size_t at = rest.find(kStep);
  if (!has_step || at == std::string_view::npos) return -1;
  int64_t step = -1;
  const char* begin = rest.data() + at + kStep.size();
  std::from_chars(begin, rest.data() + rest.size(), step);
  return step;
}

Status cut_events(const std::string& path, int64_t step) {
  PLIMSOLL_ASSIGN(const bool is_there, io::path_exists(path));
  if (!is_there) return Ok{};
  if (step == 0) return io::truncate_file(path, 0);
  int64_t cut = -1;
  std::string
      kept;  // said behind a later step, and of one that stays: a checkpoint is written beside the next
  {
    PLIMSOLL_ASSIGN(io::LineReader lines, io::LineReader::open(path));
    for (;;) {
      PLIMSOLL_ASSIGN(const auto line, lines.next());
      if (!line) break;
      const int64_t of = step_of_event(line->text);
      if (cut < 0 && (of > step || !line->whole)) cut = line->begin;
      if (cut >= 0 && line->whole && of >= 0 && of <= step) kept.append(line->text).push_back('\n');
    }
  }
  if (cut < 0) return Ok{};
  PLIMSOLL_TRY(io::truncate_file(path, cut));
  if (kept.empty()) return Ok{};
  PLIMSOLL_ASSIGN(io::AppendFile file, io::AppendFile::open(path));
  return file.add(kept);
}

Status for_each_event(const std::string& path, const std::function<Status(std::string_view)>& take) {
  PLIMSOLL_ASSIGN(io::LineReader lines, io::LineReader::open(path));
  for (;;) {
    PLIMSOLL_ASSIGN(const auto line, lines.next());
    if (!line) return Ok{};
    if (line->whole) PLIMSOLL_TRY(take(line->text));
  }
}

}  // namespace plimsoll::telemetry
