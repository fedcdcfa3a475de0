// SPDX-License-Identifier: Apache-2.0
#include "hf/lfs_pointer.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "triax/error.hpp"

namespace triax::hf {

namespace {

/// The first line of each pointer, up to its version.
constexpr std::string_view kBeginning = "version https://git-lfs.github.com/spec/";

} // namespace

void refuse_lfs_pointer(const os::InputFile& file, const std::filesystem::path& path) {
  std::string begin(kBeginning.size(), '\0');
  if (file.bytes() < begin.size()) return;
  file.read_at(0, std::as_writable_bytes(std::span(begin)));
  if (begin == kBeginning)
    throw Error("is a pointer of Git LFS, not the file itself", path.string(), "git lfs pull downloads the file");
}

} // namespace triax::hf
