-- What spec/check_layers.lua sees of a C file: what it includes, and its code without comments.

local c = { files = "-name '*.[ch]'", verb = "include", foreign = "<%s>" }

-- Comments become spaces, line ends stay, so that the numbers of lines hold. Strings and
-- characters go whole in front of both kinds of comment: "//" in one begins none.
local function code_of(text)
  local out, at = {}, 1
  while at <= #text do
    local from = text:find("[\"'/]", at)
    if not from then break end
    out[#out + 1] = text:sub(at, from - 1)
    local two, one = text:sub(from, from + 1), text:sub(from, from)
    local upto
    if two == "/*" then
      upto = select(2, text:find("*/", from + 2, true)) or #text
      out[#out + 1] = text:sub(from, upto):gsub("[^\n]", " ")
    elseif two == "//" then
      upto = (text:find("\n", from, true) or #text + 1) - 1
    elseif one == "/" then
      upto = from
      out[#out + 1] = "/"
    else
      upto = from
      repeat
        upto = upto + 1
        if text:sub(upto, upto) == "\\" then upto = upto + 2 end
      until upto >= #text or text:sub(upto, upto) == one or text:sub(upto, upto) == "\n"
      out[#out + 1] = text:sub(from, upto)
    end
    at = upto + 1
  end
  out[#out + 1] = text:sub(at)
  return table.concat(out)
end

-- Calls `uses(line, header, whose)` for each include, whose: "ours" or "foreign", and `code(line,
-- text)` for each other line.
function c.read(text, uses, code)
  local number = 0
  for line in (code_of(text) .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    local open, header = line:match("^%s*#%s*include%s*([<\"])([^>\"]*)")
    if open then uses(number, header, open == '"' and "ours" or "foreign")
    else code(number, line) end
  end
end

-- The file that a header is, as `folder` sees it; nil: none of ours.
function c.find(header, folder, exists)
  local beside = folder .. "/" .. header
  return exists[beside] and beside or exists[header] and header or nil
end

return c
