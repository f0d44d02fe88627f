#include "tasks/task_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace plimsoll::tasks {

const TaskDef* find_task(std::string_view name) {
  for (const auto file : kTaskFiles)
    if (file().name == name) return &file();
  return nullptr;
}

std::vector<std::string_view> task_names() {
  std::vector<std::string_view> names;
  for_each_task([&](const TaskDef& def) { names.push_back(def.name); });
  return names;
}

std::vector<std::string_view> readers_of(std::string_view setting) {
  std::vector<std::string_view> readers;
  const auto names_it = [&](std::string_view name) {
    return name == setting || (name.ends_with('.') && setting.starts_with(name));
  };
  for_each_task([&](const TaskDef& def) {
    if (std::ranges::any_of(def.settings, names_it)) readers.push_back(def.name);
  });
  return readers;
}

Result<const TaskDef*> choose_task(std::string_view setting, const io::ConfigJson& model) {
  const TaskDef* chosen = find_task(setting);
  if (chosen == nullptr && setting != "auto")
    return Error{ErrorCode::kInvalidArgument, fmt::format("there is no task {}", setting), "task",
                 fmt::format("choose auto, {}", fmt::join(task_names(), ", "))};
  for_each_task([&](const TaskDef& def) {
    const bool claims = chosen == nullptr && def.is_made_for != nullptr && def.is_made_for(model);
    if (claims) chosen = &def;
  });
  for_each_task([&](const TaskDef& def) {
    if (chosen == nullptr && def.is_made_for == nullptr) chosen = &def;
  });
  if (chosen->check != nullptr) PLIMSOLL_TRY(chosen->check(model));
  return chosen;
}

}  // namespace plimsoll::tasks
