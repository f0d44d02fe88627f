// Finds checkpoint folders by their names.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "checkpoints/checkpoint.h"
#include "io/file.h"

namespace plimsoll::checkpoints {

std::vector<FoundCheckpoint> find_checkpoints(const std::string& directory) {
  auto found = list_checkpoints(directory);
  return found ? std::move(*found) : std::vector<FoundCheckpoint>{};
}

Result<std::vector<FoundCheckpoint>> list_checkpoints(const std::string& directory) {
  std::vector<FoundCheckpoint> found;
  std::error_code code;
  for (std::filesystem::directory_iterator it(directory, code), end; !code && it != end; it.increment(code)) {
    const std::optional<int64_t> step = checkpoint_step(it->path().filename().string());
    std::string path = it->path().string();
    if (step && is_checkpoint(path)) found.push_back({*step, std::move(path)});
  }
  if (code && code != std::errc::no_such_file_or_directory && code != std::errc::not_a_directory)
    return io::io_error("cannot look into the folder", directory, code.value());
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.step > b.step; });
  return found;
}

bool is_checkpoint(const std::string& path) {
  const std::filesystem::path folder(path);
  const auto has = [&](std::string_view name) {
    std::error_code code;
    return std::filesystem::exists(folder / name, code) || code;
  };
  return has(kCheckpointFile) || has("optimizer.safetensors") || has("run.yaml");
}

std::optional<int64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(kCheckpointPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kCheckpointPrefix.size());
  int64_t step = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  // Back to text: one name a step, so no leading zeros and no sign.
  if (error != std::errc() || step < 0 || std::to_string(step) != digits) return std::nullopt;
  return step;
}

std::string checkpoint_path(const std::string& directory, int64_t step) {
  return fmt::format("{}/{}{}", directory, kCheckpointPrefix, step);
}

}  // namespace plimsoll::checkpoints
