// The files of a model directory that say how it chats.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace plimsoll::templates {

struct TemplateText {
  std::string text = {};
  std::string source = {};  ///< the file, and the member in it
};
struct TemplateFiles {
  TemplateText chat = {};
  TemplateText tool_use = {};  ///< for records with tools; no source where there is none of its own
  std::vector<std::pair<std::string, std::string>> special_tokens = {};  ///< ("bos_token", "<s>")
};

/// Reads a directory, or a template's own file with the special tokens of its directory. `template_file`,
/// where not empty, replaces the directory's template. Errors: kBadData that names the file: none there,
/// broken JSON, no template; kIo.
Result<TemplateFiles> read_template_files(const std::string& path, const std::string& template_file);
/// The same; nothing where a directory has none.
Result<std::optional<TemplateFiles>> find_template_files(const std::string& path,
                                                         const std::string& template_file);

}  // namespace plimsoll::templates
