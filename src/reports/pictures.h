// The images that a run's last evaluation names, as small copies for the page.
#pragma once

#include <string>
#include <vector>

#include "io/tree.h"

namespace plimsoll::reports {

/// An example with the model's answer.
struct ReportedPicture {
  std::string name, label, predicted;
  double score = 0;      ///< NaN: not told
  std::string png = {};  ///< empty: the file is no image, or not there
};

/// Those of `eval`, an event whose writer is not known; paths are as the run had them. `notes` gets a line
/// where files cannot be read.
std::vector<ReportedPicture> read_pictures(const io::Tree& eval, std::vector<std::string>& notes);

}  // namespace plimsoll::reports
