# Strings that grow by one character at a time; the number of steps is the first line of the input.
{
  for (i = 0; i < $1; ++i) s[i % 999] = length(s[i % 999]) < 2000 ? s[i % 999] i % 7 : ""
  for (i = 0; i < 999; ++i) { t += length(s[i]); u = (u * 31 + substr(s[i], 1, 9)) % 1000003 }
  print t, u
}
