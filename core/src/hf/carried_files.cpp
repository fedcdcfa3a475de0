// SPDX-License-Identifier: Apache-2.0
#include "hf/carried_files.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "checkpoint/weights.hpp"
#include "os/input_file.hpp"
#include "triax/error.hpp"

namespace triax::hf {

namespace {

constexpr std::array kNames = {"tokenizer.json",          "vocab.json",          "merges.txt",
                               "tokenizer_config.json",   "tokenizer.model",     "added_tokens.json",
                               "special_tokens_map.json", "chat_template.jinja", "generation_config.json"};
constexpr std::size_t kBuffer = std::size_t{1} << 20;

} // namespace

std::vector<std::string> carried_files(const std::filesystem::path& folder) {
  std::vector<std::string> out;
  for (const char* name : kNames) {
    std::error_code unknown;
    const std::filesystem::path file = folder / name;
    if (std::filesystem::symlink_status(file, unknown).type() == std::filesystem::file_type::not_found) continue;
    const std::string problem = os::why_not_a_file(file);
    if (!problem.empty()) throw Error(problem, file.string(), "remove it, or restore it");
    out.emplace_back(name);
  }
  return out;
}

void copy_files(const std::filesystem::path& from, const std::vector<std::string>& names,
                const checkpoint::StagedFolder& into, const std::string& prefix, const checkpoint::StopRequest& stop) {
  std::vector<std::byte> buffer(kBuffer);
  for (const std::string& name : names) {
    const os::InputFile file(from / name);
    os::DurableFile copy = into.file(prefix + name);
    for (std::uint64_t at = 0; at < file.bytes(); at += kBuffer) {
      checkpoint::check_stop(stop);
      const std::span<std::byte> part = std::span(buffer).first(std::min<std::uint64_t>(kBuffer, file.bytes() - at));
      file.read_at(at, part);
      copy.write(part);
    }
    copy.finish();
  }
}

} // namespace triax::hf
