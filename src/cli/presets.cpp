// plimsoll presets: the families and sizes that are known by name.
#include "models/presets.h"

#include <cstdio>

#include "base/numbers.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "io/tree.h"
#include "models/image_model.h"
#include "models/language_model.h"

namespace plimsoll::cli {
namespace {

struct PresetsArguments {
  bool json = false;
};

struct Row {
  models::PresetInfo preset;
  std::string family;
  int64_t parameters = 0;
  int64_t positions = 0, image_size = 0;  ///< 0: it has none
};

Result<std::vector<Row>> rows() {
  std::vector<Row> list;
  for (const models::PresetInfo& preset : models::presets()) {
    PLIMSOLL_ASSIGN(const io::ConfigJson config, models::preset_config(preset.name));
    PLIMSOLL_ASSIGN(const std::unique_ptr<const models::Model> model, models::make_model(config));
    const auto family = config.model_type();
    Row row{preset, family ? *family : "", model->num_parameters()};
    if (const auto* language = models::as_language_model(*model)) row.positions = language->max_positions();
    if (const auto* image = models::as_image_model(*model)) row.image_size = image->image_size();
    list.push_back(std::move(row));
  }
  return list;
}

void print_json(const Row& row) {
  const auto text = [](std::string_view value) { return io::Tree::of(std::string(value)); };
  io::Tree event = io::Tree::map({{"event", text("preset")},
                                  {"name", text(row.preset.name)},
                                  {"family", text(row.family)},
                                  {"parameters", io::Tree::of(row.parameters)}});
  if (row.positions > 0) event.set("max_position_embeddings", io::Tree::of(row.positions));
  if (row.image_size > 0) event.set("image_size", io::Tree::of(row.image_size));
  event.set("licence", text(row.preset.licence));
  event.set("hub_id", text(row.preset.hub_id));
  std::puts(io::to_json(event).c_str());
}

Status run_presets(const PresetsArguments& arguments) {
  PLIMSOLL_ASSIGN(const std::vector<Row> list, rows());
  if (arguments.json) {
    for (const Row& row : list) print_json(row);
    return Ok{};
  }
  constexpr auto kRight = Table::Align::kRight;
  Table table({{"preset"},
               {"family"},
               {"parameters", kRight},
               {"positions", kRight},
               {"weights' licence"},
               {"on the hub"}});
  for (const Row& row : list)
    table.add({std::string(row.preset.name), row.family, grouped(row.parameters),
               row.positions > 0 ? grouped(row.positions) : "-", std::string(row.preset.licence),
               std::string(row.preset.hub_id)});
  print_text(table.text());
  print_text(
      "\nA preset is an architecture without weights: model.preset=NAME plans it, or trains it from random "
      "weights.\n"
      "The licence is that of the weights on the hub; read it there before you use them.\n");
  return Ok{};
}

}  // namespace

Command add_presets(Parser app) {
  return add_command<PresetsArguments>(
      app, "presets", "list the model families and sizes that are known by name",
      [](Parser command, PresetsArguments& arguments) {
        command.add_flag("--json", arguments.json, "print one JSON object per preset");
        command.footer(
            "examples: plimsoll presets\n"
            "          plimsoll plan run.yaml model.preset=qwen3-4b\n"
            "          plimsoll plan run.yaml model.preset=meta-llama/Llama-3.1-8B   the hub's spelling");
      },
      run_presets);
}

}  // namespace plimsoll::cli
