#include "preprocessing/template_date.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "io/file.h"
#include "io/hub_cache.h"
#include "preprocessing/data_files.h"
#include "preprocessing/run_data.h"
#include "preprocessing/run_task.h"
#include "settings/settings.h"
#include "templates/chat_template.h"

namespace plimsoll::preprocessing {
namespace {

constexpr const char* kAuto = "auto";

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

bool has_rows(const settings::DataSettings& data) {
  for (const auto* patterns : {&data.train, &data.eval.files})
    for (const std::string& file : files_of(*patterns))
      if (kind_of(file) == FileKind::kJson) return true;
  return false;
}

/// Whether the run's template writes a date. What is wrong with it is told when the data is prepared.
bool asks_for_date(const settings::RunConfig& config) {
  if (!has_rows(config.data)) return false;
  const auto model = settings::load_model_config(config.model);
  const auto task = model ? task_of(config, *model) : Result<const tasks::TaskDef*>(model.error());
  if (!task || (*task)->preparation != tasks::Preparation::kPack) return false;
  auto path = tokenizer_path(config);
  if (!path || *path == "bytes") return false;
  if (!plimsoll::io::is_file(*path)) path = io::find_model_folder(*path);
  if (!path) return false;
  const std::string folder = plimsoll::io::is_file(*path) ? io::folder_of(*path) : *path;
  const auto found =
      templates::ChatTemplate::open_if_any(folder, {.template_file = config.data.chat_template});
  return found && *found != nullptr && (*found)->asks_for_date();
}

}  // namespace

std::string recorded_date(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{16} << 20;
  const auto text = io::read_small_file(path, kMostBytes);
  const auto run =
      text ? settings::parse_recorded_run(*text, path) : Result<settings::RunConfig>(text.error());
  return run ? run->data.template_date : kAuto;
}

std::optional<int64_t> template_now(const settings::DataSettings& data) {
  int year = 0;
  unsigned month = 0, day = 0;
  if (std::sscanf(data.template_date.c_str(), "%4d-%2u-%2u", &year, &month, &day) != 3) return std::nullopt;
  const std::chrono::sys_days date{std::chrono::year(year) / std::chrono::month(month) /
                                   std::chrono::day(day)};
  return std::chrono::seconds(date.time_since_epoch()).count();
}

settings::RunConfig with_template_date(const settings::RunConfig& config,
                                       const std::optional<std::string>& recorded,
                                       const std::function<void(const std::string&)>& note) {
  settings::RunConfig fixed = config;
  const bool follows = fixed.data.template_date == kAuto && recorded;
  if (follows) fixed.data.template_date = *recorded;
  if (!asks_for_date(config)) return fixed;
  if (fixed.data.template_date == kAuto && !follows) fixed.data.template_date = today();
  if (fixed.data.template_date != kAuto && note)
    note(fmt::format("the chat template writes a date, which is {} in this run (data.template_date)",
                     fixed.data.template_date));
  return fixed;
}

}  // namespace plimsoll::preprocessing
