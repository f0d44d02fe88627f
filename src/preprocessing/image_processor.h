// Chooses the processor of a run's images: the model's own, with what data.images says put over it.
#pragma once

#include "base/result.h"
#include "images/processor.h"
#include "io/model_config.h"
#include "settings/run_config.h"
#include "tasks/image_classification.h"

namespace plimsoll::preprocessing {

/// preprocessor_config.json of the model's folder, or the preset's; else timm's pretrained_cfg of its
/// config.json; else squares of the model's image_size, as transformers' ViTImageProcessor has them. A
/// setting wins over these. Where data.images.size alone changes, what is resized before a crop keeps its
/// proportion to the crop. Errors: kBadData of the file; kInvalidArgument where settings contradict.
Result<images::Processor> image_processor(const settings::RunConfig& config, const io::ConfigJson& model);

/// All that the task knows of images; `reading_bytes` as the data has been found to need, 0: not known yet.
Result<tasks::ImageInputs> image_inputs(const settings::RunConfig& config, const io::ConfigJson& model,
                                        int64_t reading_bytes);

}  // namespace plimsoll::preprocessing
