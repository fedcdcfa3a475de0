// SPDX-License-Identifier: Apache-2.0
#include "hf/json_file.hpp"

#include <string>

#include "os/input_file.hpp"
#include "triax/error.hpp"

namespace triax::hf {

namespace {

constexpr const char* kDamagedJson = "the file was damaged, or is not of a model: download the folder again";

} // namespace

Json read_json_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const os::InputFile file(path, "name the folder of a model that transformers has saved");
  if (file.bytes() > max_bytes)
    throw Error(text("has {} bytes, and at most {} are read", file.bytes(), max_bytes), path.string(), kDamagedJson);
  std::string bytes(file.bytes(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  Json out;
  const std::string problem = checkpoint::parse_strict(bytes, out);
  if (!problem.empty()) throw Error(problem, path.string(), kDamagedJson);
  if (!out.is_object()) throw Error("is not a JSON object", path.string(), kDamagedJson);
  return out;
}

} // namespace triax::hf
