// Inputs, one after another, cut into documents and handed to a filler.
//
// Threads: one. Ownership: values. Blocking: reads. Memory: constant. Errors: Error naming file and byte.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/document_jobs.hpp"
#include "triax/error.hpp"

namespace triax::data {

/// Bytes read so far, of all inputs together. It may throw: then what calls it takes back what it has done.
using ReadProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// What speaks against reading these, for each of them.
void check_inputs(const std::vector<std::filesystem::path>& inputs, std::vector<Support>& out);
/// What speaks against making files beside this one; its folder need not be there yet.
void check_output_folder(const std::filesystem::path& file, std::vector<Support>& out);
/// What speaks against writing this file: it is one of the inputs, no file, or there and `force` is not given.
void check_output_file(const std::filesystem::path& file, const std::vector<std::filesystem::path>& inputs, bool force,
                       std::vector<Support>& out);
void check_separator(const std::string& separator, std::vector<Support>& out);
void check_threads(int threads, std::vector<Support>& out);

/// Unless any bytes will do, they are checked to be UTF-8. An empty separator cuts nothing. Returns the inputs' size.
std::uint64_t read_documents(const std::vector<std::filesystem::path>& inputs, const std::string& separator,
                             bool any_bytes, JobFiller& filler, const ReadProgress& progress);

} // namespace triax::data
