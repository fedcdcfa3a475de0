// SPDX-License-Identifier: Apache-2.0
// Next steps that several errors about a model's folder name.
//
// Threads: constants. Errors: none.
#pragma once

namespace triax::hf {

inline constexpr const char *kNameModelFolder = "name the folder of a model that transformers has saved",
                            *kDamagedFile = "the file was damaged, or is not of a model: download the folder again",
                            *kOtherModel = "the file is of another model, or was damaged",
                            *kDownloadAgain = "download the folder again, or name another",
                            *kQuantized = "quantized models cannot be imported: use the model that was quantized",
                            *kDefect = "this is a defect of the model plugin: report it to its author";

} // namespace triax::hf
