#include "settings/offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "settings/named_profile.h"
#include "settings/wrong.h"

namespace plimsoll::settings {
namespace {

using ir::MemorySpace;
using passes::OffloadClass;

std::optional<OffloadClass> parse_class(std::string_view word) {
  for (size_t c = 0; c < passes::kNumOffloadClasses; ++c)
    if (passes::name(static_cast<OffloadClass>(c)) == word) return static_cast<OffloadClass>(c);
  return std::nullopt;
}

bool is_map(const io::Tree& offload) { return offload.kind == io::Tree::Kind::kMap; }

/// Of a class: "host", or {host: 12}.
struct Placed {
  std::string place;
  int32_t blocks = passes::kAllBlocks;
};

std::optional<Placed> parse_placed(const io::Tree& value) {
  const auto is_place = [](const std::string& place) {
    return place == "host" || place == "disk" || place == "none";
  };
  if (value.is_scalar()) return is_place(value.text) ? std::optional(Placed{value.text}) : std::nullopt;
  if (!is_map(value) || value.members.size() != 1) return std::nullopt;
  const auto& [place, count] = value.members.front();
  constexpr int64_t kMostBlocks = 1'000'000;
  if (!is_place(place) || count.kind != io::Tree::Kind::kInteger || count.integer < 0 ||
      count.integer > kMostBlocks)
    return std::nullopt;
  return Placed{place, static_cast<int32_t>(count.integer)};
}

bool names_host(const io::Tree& offload) {
  return is_map(offload) && std::ranges::any_of(offload.members, [](const auto& entry) {
           const auto placed = parse_placed(entry.second);
           return placed && placed->place == "host";
         });
}

}  // namespace

std::vector<std::string> offload_places(const RunConfig& config) {
  if (is_for_card(config)) return {"host"};
  if (config.runtime.device == "cpu") return {"disk"};
  return {"host", "disk"};
}

Status check_offload(const RunConfig& config) {
  const io::Tree& offload = config.memory.offload;
  if (config.memory.disk_budget.kind == MemoryBudget::Kind::kShare)
    return wrong_setting("memory.disk_budget is a share, expected auto or a size such as 20GiB",
                         "give it in bytes");
  if (!is_map(offload)) {
    if (offload.text == "auto" || offload.text == "none") return Ok{};
    return wrong_setting(
        fmt::format("memory.offload is {}, expected auto, none or a map", offload.describe()),
        "write it as {optimizer: host, activations: disk}");
  }
  for (const auto& [key, value] : offload.members) {
    if (!parse_class(key))
      return wrong_setting(fmt::format("memory.offload has {}, expected activations, optimizer, masters, "
                                       "gradients, parameters",
                                       key),
                           "name one of these classes");
    const auto placed = parse_placed(value);
    if (!placed)
      return wrong_setting(
          fmt::format("memory.offload.{} is {}, expected host, disk, none", key, value.describe()),
          "choose one of these places, or of how many layers: {host: 12}");
    const std::string& place = placed->place;
    if (place == "disk" && !std::ranges::count(offload_places(config), place))
      return wrong_setting(
          fmt::format("memory.offload.{} is disk, and {} has no memory there", key, device_text(config)),
          fmt::format("set memory.offload={{{}: host}}", key));
  }
  return Ok{};
}

passes::OffloadOptions offload_options(const RunConfig& config) {
  passes::OffloadOptions options;
  if (!is_map(config.memory.offload)) return options;
  const bool has_host = config.runtime.device == "discrete" || is_for_card(config);
  for (const auto& [key, value] : config.memory.offload.members) {
    const auto c = parse_class(key);
    const auto placed = parse_placed(value);
    if (!c || !placed) continue;
    const std::string& place = placed->place;
    if (placed->blocks == 0) continue;
    options.blocks[static_cast<size_t>(*c)] = placed->blocks;
    options.spaces[static_cast<size_t>(*c)] = place == "disk"               ? MemorySpace::kDisk
                                              : place == "host" && has_host ? MemorySpace::kHostPinned
                                                                            : MemorySpace::kDevice;
  }
  return options;
}

bool chooses_offload(const RunConfig& config) {
  return config.memory.offload.text == "auto" && config.distributed.num_ranks() == 1;
}

std::vector<std::string> offload_notes(const RunConfig& config) {
  if (config.runtime.device != "cpu" || is_for_card(config) || !names_host(config.memory.offload)) return {};
  return {"memory.offload: host has no effect with runtime.device cpu, whose memory is the host's"};
}

std::string offload_text(const passes::OffloadOptions& options) {
  std::string text;
  for (size_t c = 0; c < passes::kNumOffloadClasses; ++c) {
    const MemorySpace space = options.spaces[c];
    if (space != MemorySpace::kDevice)
      text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", passes::name(static_cast<OffloadClass>(c)),
                          space == MemorySpace::kDisk ? "disk" : "host",
                          options.blocks[c] == passes::kAllBlocks
                              ? ""
                              : fmt::format(" {} of {} layers", options.blocks[c], options.num_blocks));
  }
  return text.empty() ? "none" : text;
}

const std::string& offload_folder(const RunConfig& config) {
  return config.memory.offload_dir.empty() ? config.output.dir : config.memory.offload_dir;
}

}  // namespace plimsoll::settings
