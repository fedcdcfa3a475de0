// SPDX-License-Identifier: Apache-2.0
// A PTX module after its declarations were read; bodies are decoded when a kernel is looked for.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "code.hpp"
#include "lexer.hpp"

namespace triax::gpu_stand_in {

struct SharedVariable {
  std::size_t bytes = 0, align = 1;
  bool dynamic = false;
};

struct Function {
  std::string name;
  bool entry = false;
  std::vector<Param> results, params;
  Token body; // with its braces; empty: declared only
  Dim3 max_threads{0, 0, 0}, required_threads{0, 0, 0};
  unsigned line = 0;
};

struct ModuleText : Module {
  explicit ModuleText(std::string_view ptx);
  const Kernel* find(std::string_view name) const override;

  std::string text;
  std::map<std::string, Function, std::less<>> functions;
  std::map<std::string, SharedVariable, std::less<>> shared;
  std::vector<GlobalVariable> variables;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::unique_ptr<Kernel>, std::less<>> decoded_;
};

// Reads `[.align N] .type name[N] [= {...}]` behind the space; `at` is left behind it.
struct Declaration {
  std::string name;
  Type type = Type::kNone;
  std::size_t bytes = 0, align = 1;
  bool open_array = false; // "[]": size not given
  std::vector<std::byte> initial;
};
Declaration read_declaration(const std::vector<Token>& tokens, std::size_t& at);
std::uint64_t read_integer(const Token& token);

// Decodes a kernel's body. Throws PtxError.
std::unique_ptr<Kernel> decode_kernel(const ModuleText& module, const Function& function);

} // namespace triax::gpu_stand_in
