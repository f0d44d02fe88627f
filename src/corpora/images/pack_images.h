// Writes images into one file (image_pack.h): the bytes of their files, or decoded pixels.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/stop.h"
#include "corpora/images/image_entries.h"
#include "corpora/images/scan_images.h"
#include "images/processor.h"

namespace plimsoll::corpora {

struct PackImages {
  const images::Processor& processor;  ///< how files are decoded, and where they are `ready` all of it
  bool decoded = false;                ///< pixels; else the bytes of the files
  bool ready = false;                  ///< pixels resized and cropped; else as large as the image
  int64_t shortest = 0;  ///< not ready: a larger image is resized so that its shorter side has this; 0: none
  OnError on_error = OnError::kFail;
  int num_threads = 1;
  std::function<void(int64_t done, int64_t total)> progress = {};
  Stop stop = {};
};

/// Writes the images of `entries`, which `scanned` describes, in their order; then the entries name their
/// places in the pack, and the summary what reading takes with `augmentations`. Pixels are the same as those
/// that the files give with this processor. An image that cannot be decoded is an error; with OnError::kSkip
/// it is counted as skipped and the pack's index leaves it out, while its entry names a place that cannot be
/// decoded either, so that a list of the entries keeps its length. Returns how many images the index names.
/// Determinism: nothing depends on the number of threads. Errors: kBadData with the file; kInterrupted; kIo,
/// a full disk among them.
Result<int64_t> pack_images(const std::string& path, const PackImages& how,
                            const images::Augmentations* augmentations, ImageEntries& entries,
                            ScannedImages& scanned);

}  // namespace plimsoll::corpora
