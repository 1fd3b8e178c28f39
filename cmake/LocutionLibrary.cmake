# One call in each src/<folder>/CMakeLists.txt:
#   locution_library(<folder> DEPS <folder>... [LINK <library>...])
# The folder's *.cpp make the static library locution_<folder> ('/' becomes '_'), its *_test.cpp the GoogleTest binary
# <folder>_test, its *_bench.cpp the Google Benchmark binary <folder>_bench. DEPS are the folders whose headers may be
# included (scripts/layering.py checks the includes themselves); LINK names third-party libraries, which stay private.

# Warnings, include roots and (in dev builds) the standard library's checks, shared by every target of ours.
add_library(locution_options INTERFACE)
target_include_directories(locution_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(locution_options INTERFACE -Wall -Wextra $<$<BOOL:${LOCUTION_WERROR}>:-Werror>)
# clang reports that libstdc++ 12 uses its own deprecated helpers (std::stable_sort).
target_compile_options(locution_options INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>)
# A fused multiply-add must come from a decision in a plan or a kernel, never from the host compiler's mood.
target_compile_options(locution_options INTERFACE -ffp-contract=off)
target_compile_definitions(locution_options INTERFACE $<$<CONFIG:RelWithDebInfo,Debug>:_GLIBCXX_ASSERTIONS>)

function(locution_target_name folder out)
  string(REPLACE "/" "_" name "${folder}")
  set(${out} ${name} PARENT_SCOPE)
endfunction()

function(locution_library folder)
  cmake_parse_arguments(ARG "" "" "DEPS;LINK" ${ARGN})
  locution_target_name(${folder} name)
  set(dir ${PROJECT_SOURCE_DIR}/src/${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  file(GLOB tests CONFIGURE_DEPENDS ${dir}/*_test.cpp)
  file(GLOB benches CONFIGURE_DEPENDS ${dir}/*_bench.cpp)
  if(tests OR benches)
    list(REMOVE_ITEM sources ${tests} ${benches})
  endif()

  set(deps locution_options)
  foreach(dep ${ARG_DEPS})
    locution_target_name(${dep} dep)
    list(APPEND deps locution_${dep})
  endforeach()

  if(sources)
    add_library(locution_${name} STATIC ${sources})
    target_link_libraries(locution_${name} PUBLIC ${deps} PRIVATE ${ARG_LINK})
  else()
    # Headers only, or not written yet.
    add_library(locution_${name} INTERFACE)
    target_link_libraries(locution_${name} INTERFACE ${deps} ${ARG_LINK})
  endif()

  if(tests AND BUILD_TESTING)
    locution_test(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE locution_${name} ${ARG_LINK})
  endif()
  if(benches AND BUILD_TESTING)
    add_executable(${name}_bench EXCLUDE_FROM_ALL ${benches})
    target_link_libraries(${name}_bench PRIVATE locution_${name} ${ARG_LINK} benchmark::benchmark_main)
    set_target_properties(${name}_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bench)
  endif()
endfunction()

# locution_test(<name> <source>...): a GoogleTest binary, with RapidCheck at hand, that is one CTest entry.
function(locution_test name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE locution_options GTest::gtest_main GTest::gmock rapidcheck)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test)
  target_compile_definitions(${name} PRIVATE LOCUTION_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             LOCUTION_BINARY_DIR="${CMAKE_BINARY_DIR}"
                                             LOCUTION_ONNX_WHEEL="${LOCUTION_ONNX_WHEEL}")
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES LABELS gtest TIMEOUT 600)
endfunction()

# locution_fuzz(<name> <source>... DEPS <folder>...): a libFuzzer binary, made by the fuzz preset only.
function(locution_fuzz name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  if(NOT LOCUTION_FUZZ)
    return()
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE locution_options)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  foreach(dep ${ARG_DEPS})
    locution_target_name(${dep} dep)
    target_link_libraries(${name} PRIVATE locution_${dep})
  endforeach()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()

# locution_executable(<name> DEPS <folder>... [LINK <library>...]): the *.cpp and *.c of the calling folder as a program at
# the top of the build folder. A folder without sources makes nothing.
function(locution_executable name)
  cmake_parse_arguments(ARG "" "" "DEPS;LINK" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp *.c)
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cpp$")
  if(NOT sources)
    return()
  endif()
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE locution_options ${ARG_LINK})
  foreach(dep ${ARG_DEPS})
    locution_target_name(${dep} dep)
    target_link_libraries(${name} PRIVATE locution_${dep})
  endforeach()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()
