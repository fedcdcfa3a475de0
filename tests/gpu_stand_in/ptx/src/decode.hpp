// SPDX-License-Identifier: Apache-2.0
// Decodes the body of a kernel; calls of functions are expanded in place.
#pragma once

#include <map>
#include <unordered_map>

#include "module.hpp"

namespace triax::gpu_stand_in {

struct Decoder {
  struct Register {
    std::uint32_t offset;
    Type type;
  };
  struct Scope {
    std::unordered_map<std::string_view, Register> registers;
    std::unordered_map<std::string_view, std::size_t> local; // and parameters of calls: both lie in local memory
  };
  // The kernel, or one expansion of a function.
  struct Body {
    std::vector<Token> tokens; // without the braces
    std::vector<Scope> scopes;
    std::unordered_map<std::string_view, int> labels;
    std::vector<std::pair<std::size_t, const Token*>> jumps; // instructions to labels
    std::vector<std::size_t> returns;
  };

  const ModuleText& module;
  Kernel& kernel;
  KernelCode& code;
  std::vector<Body*> bodies{};
  std::unordered_map<std::string_view, std::size_t> shared_at{};
  std::map<std::pair<std::uint64_t, int>, std::uint32_t> constants{};
  std::vector<std::pair<std::uint32_t, int>>
      dynamic_constants{}; // constants that count from the end of static shared memory

  void body(const Function& function, Scope first);
  void finish();

 private:
  using Span = std::pair<std::size_t, std::size_t>; // of tokens
  const Token& token(std::size_t at) const { return bodies.back()->tokens[at]; }
  Body& current() { return *bodies.back(); }

  void statement(std::size_t begin, std::size_t end);
  void directive(std::size_t begin, std::size_t end);
  void declare_registers(std::size_t begin, std::size_t end);
  void instruction(std::size_t begin, std::size_t end);
  void call(std::size_t begin, std::size_t end);
  std::vector<Span> split_operands(std::size_t begin, std::size_t end) const;
  void operands(Instruction& i, const std::vector<Span>& spans, unsigned line);
  void operand(Instruction& i, Span span, Type type);
  void add(Instruction& i, Ref ref, unsigned line);
  void address(Instruction& i, Span span, bool second);
  Ref value(Span span, Type type);
  Ref named(const Token& name, std::int64_t addend, Type type);
  Ref constant(std::uint64_t bits, int width);
  Ref special(const Token& name);
  const Register* find_register(std::string_view name) const;
  bool find_local(std::string_view name, std::size_t& offset) const;
  bool find_shared(std::string_view name, std::size_t& offset, bool& dynamic);
  std::uint32_t new_register(Type type);
  std::size_t new_local(std::size_t bytes, std::size_t align);
  std::string text_of(std::size_t begin, std::size_t end) const;
};

// Type of operand n, counted as PTX writes them.
Type operand_type(const Instruction& instruction, std::size_t n);

} // namespace triax::gpu_stand_in
