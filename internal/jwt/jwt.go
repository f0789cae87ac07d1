// Package jwt signs and checks the tokens that Slurm's auth/jwt takes.
package jwt

import (
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// MinKey is how many bytes a key must have at least; Slurm takes fewer, but a short key can be guessed.
const MinKey = 16

// claims are what Slurm reads: whom the token stands for, and since and until when.
type claims struct {
	User string `json:"sun"`
	jwt.RegisteredClaims
}

// A Token is a signed token and what is in it. Its text is a secret.
type Token struct {
	Text    string
	User    string
	Issued  time.Time
	Expires time.Time
}

// Sign makes a token with an HS256 key. Its times are whole seconds.
func Sign(key []byte, user string, now time.Time, lifetime time.Duration) (Token, error) {
	if len(key) < MinKey {
		return Token{}, fmt.Errorf("the HS256 key has %d bytes; use one of at least %d, better 32 random bytes", len(key), MinKey)
	}
	token := Token{User: user, Issued: now.Truncate(time.Second), Expires: now.Add(lifetime).Truncate(time.Second)}
	var err error
	token.Text, err = jwt.NewWithClaims(jwt.SigningMethodHS256, claims{user, jwt.RegisteredClaims{
		IssuedAt: jwt.NewNumericDate(token.Issued), ExpiresAt: jwt.NewNumericDate(token.Expires),
	}}).SignedString(key)
	return token, err
}

// Parse reads a token that was signed with the key, expired or not. Its errors never contain the token.
func Parse(key []byte, text string) (Token, error) {
	var found claims
	_, err := jwt.ParseWithClaims(text, &found, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithoutClaimsValidation())
	switch {
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return Token{}, errors.New("the token was signed with another key")
	case err != nil:
		return Token{}, errors.New("this is not a token of Slurm's")
	case found.ExpiresAt == nil || found.IssuedAt == nil:
		return Token{}, errors.New("the token does not say since and until when it is valid")
	}
	return Token{Text: text, User: found.User, Issued: found.IssuedAt.Time, Expires: found.ExpiresAt.Time}, nil
}
