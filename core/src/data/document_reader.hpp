// SPDX-License-Identifier: Apache-2.0
// Reads input files one after another, cuts them into documents and passes these to a filler.
//
// Blocking: reads. Memory: constant. Errors: Error with file and byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/document_jobs.hpp"
#include "triax/error.hpp"

namespace triax::data {

/// Called with the bytes read so far and the total of all inputs. If it throws, the calling function undoes its work.
using ReadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Adds an error for each input that cannot be read.
void check_inputs(const std::vector<std::filesystem::path>& inputs, Refusals& out);
/// Adds an error if files cannot be created in the folder of `file`; the folder need not exist yet.
void check_output_folder(const std::filesystem::path& file, Refusals& out);
/// Adds an error if the file cannot be written: it is an input or not a regular file, or it exists and `force` is
/// false.
void check_output_file(const std::filesystem::path& file, const std::vector<std::filesystem::path>& inputs, bool force,
                       Refusals& out);
void check_separator(const std::string& separator, Refusals& out);
void check_threads(int threads, Refusals& out);

/// Checks that the text is UTF-8, unless `any_bytes`. An empty separator does not split. Returns the inputs' size.
std::uint64_t read_documents(const std::vector<std::filesystem::path>& inputs, const std::string& separator,
                             bool any_bytes, JobFiller& filler, const ReadProgress& progress);

} // namespace triax::data
