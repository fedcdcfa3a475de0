// SPDX-License-Identifier: Apache-2.0
#include "hf/json_file.hpp"

#include <string>

#include "base/bytes_text.hpp"
#include "hf/hints.hpp"
#include "hf/lfs_pointer.hpp"
#include "os/input_file.hpp"
#include "triax/error.hpp"

namespace triax::hf {

Json read_json_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  const os::InputFile file(path, kNameModelFolder);
  refuse_lfs_pointer(file, path);
  if (file.bytes() > max_bytes)
    throw Error(text("has {}, but at most {} are read", bytes_text(file.bytes()), bytes_text(max_bytes)), path.string(),
                kDamagedFile);
  std::string bytes(file.bytes(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  Json out;
  const std::string problem = checkpoint::parse_strict(bytes, out);
  if (!problem.empty()) throw Error(problem, path.string(), kDamagedFile);
  if (!out.is_object()) throw Error("is not a JSON object", path.string(), kDamagedFile);
  return out;
}

} // namespace triax::hf
