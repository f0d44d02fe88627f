// A small file of a model's directory, as a checkpoint and final/ hold it beside the weights.
#pragma once

#include <string>

namespace plimsoll::train {

struct ModelFile {
  std::string name = {};
  std::string text = {};    ///< its content; where `source` is named, that file's
  std::string source = {};  ///< copied when it is saved
};

}  // namespace plimsoll::train
