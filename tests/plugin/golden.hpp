// Whole texts compared with files of golden/; UPDATE_GOLDEN=1 rewrites them.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

inline void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(GOLDEN) / (name + ".txt");
  if (std::getenv("UPDATE_GOLDEN")) {
    std::ofstream(file) << text << '\n';
    return;
  }
  std::ifstream in(file);
  ASSERT_TRUE(in) << file << " is missing; UPDATE_GOLDEN=1 writes it";
  std::stringstream golden;
  golden << in.rdbuf();
  EXPECT_EQ(text + "\n", golden.str());
}
