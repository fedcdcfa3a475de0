// SPDX-License-Identifier: Apache-2.0
// Compares texts with committed files; UPDATE_GOLDEN=1 writes the files.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/temp_folder.hpp"

namespace triax::test {

/// For text that differs between runs.
inline void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

inline void expect_golden(const std::filesystem::path& file, const std::string& actual) {
  if (std::getenv("UPDATE_GOLDEN")) {
    write_file(file, actual);
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(file)) << file << " is missing; UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(actual, read_file(file)) << "held in " << file << "; if the new text is right, UPDATE_GOLDEN=1 writes it";
}

} // namespace triax::test
